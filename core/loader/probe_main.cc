#include "core/loader/probe.h"

int main(int argc, char** argv) { return mk::ProbeMain(argc, argv); }
