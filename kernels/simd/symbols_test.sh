#!/bin/sh
# symbols_test.sh ARCHIVE...   (libfoo_<set>.a, as mk_simd_library names them)
# Every symbol that a unit of one instruction set offers to the linker carries the set's name. An inline function without
# it, compiled with AVX-512 in one unit and for the base in another, is one function to the linker, and which body it
# keeps is chance: on a CPU without AVX-512 that is a crash.
set -eu
archives=0
foreign=0
for archive in "$@"; do
  case $archive in
    *_base.a) set=base ;;
    *_avx2.a) set=avx2 ;;
    *_avx512.a) set=avx512 ;;
    *) continue ;;
  esac
  archives=$((archives + 1))
  [ -r "$archive" ] || { echo "FAIL $archive is not there"; exit 1; }
  nm --defined-only "$archive" | grep -q " T .*${#set}$set" || { echo "FAIL $archive offers nothing"; exit 1; }
  # Lower case is local to the unit, but for the weak and the unique. Names are mangled: 4avx2, 6avx512. Symbols of the
  # sanitizers' own begin with two underscores.
  names=$(nm --defined-only "$archive" | awk -v name="${#set}$set" \
    'NF == 3 && $2 ~ /^[A-Zuvw]$/ && index($3, name) == 0 && $3 !~ /^__(asan|odr_asan|ubsan|tsan)/ { print $3 }')
  for name in $names; do
    echo "FAIL $(basename "$archive"): $name is outside of mk::simd::$set"
    foreign=$((foreign + 1))
  done
done
echo "$archives archives, $foreign foreign symbols"
[ "$archives" -gt 0 ] && [ "$foreign" -eq 0 ]
