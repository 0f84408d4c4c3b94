"""That the gates fall where they should: static_gates.py on made-up reports."""

import copy
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import static_gates  # noqa: E402

CUBIN = {"registers": 128, "stack_bytes": 0, "spill_bytes": 0, "static_shared_bytes": 0}
PTX = {"threads": 256, "mma.sync": 64, "ldmatrix": 24, "cp.async.c": 9, "bar.sync": 2, "ld.local": 0, "st.local": 0}
KERNEL = "mk_linear_f16_128x128"


def report(cubin=None, ptx=None):
    return {
        "module": "linear",
        "dynamic_shared_bytes": {KERNEL: 65536},
        "images": [
            {"kind": "cubin", "sm": 87, "toolkit": "13.0", "kernels": {KERNEL: {**CUBIN, **(cubin or {})}}},
            {"kind": "ptx", "sm": 80, "toolkit": "13.0", "kernels": {KERNEL: {**PTX, **(ptx or {})}}},
        ],
    }


def complaints(changed, toolkit="13.0", budget=None):
    whole, _ = static_gates.measure(report())
    got, bad = static_gates.measure(changed)
    budget = budget or {"toolkit": "13.0", "modules": {"linear": whole}}
    return bad + static_gates.judge(budget, {"linear": got}, toolkit)


class Occupancy(unittest.TestCase):
    def test_the_worked_examples_of_nvidias_calculator(self):
        # (threads, registers, shared bytes) -> blocks on sm_87 and sm_110, as cuda_occupancy.h computed them.
        for (threads, registers, shared), on87, on110 in [
            ((128, 168, 48 << 10), 3, 3),
            ((256, 128, 96 << 10), 1, 2),
            ((128, 255, 64 << 10), 2, 2),
        ]:
            self.assertEqual(static_gates.blocks_per_sm(87, threads, registers, shared), on87)
            self.assertEqual(static_gates.blocks_per_sm(110, threads, registers, shared), on110)

    def test_blocks_threads_and_reserved_memory_bound_it(self):
        self.assertEqual(static_gates.blocks_per_sm(87, 32, 16, 0), 16)
        self.assertEqual(static_gates.blocks_per_sm(110, 32, 16, 0), 24)
        self.assertEqual(static_gates.blocks_per_sm(87, 1024, 32, 0), 1)
        self.assertEqual(static_gates.blocks_per_sm(87, 256, 32, 81 << 10), 2)
        self.assertEqual(static_gates.blocks_per_sm(87, 256, 32, 82 << 10), 1)


class OlderToolkit(unittest.TestCase):
    def both(self, **older):
        two = report()
        kernels = {KERNEL: {**CUBIN, **older}}
        two["images"].insert(1, {"kind": "cubin", "sm": 87, "toolkit": "12.6", "kernels": kernels})
        return two

    def test_its_code_is_held_by_the_same_rules_under_a_name_of_its_own(self):
        kernels, bad = static_gates.measure(self.both(registers=120))
        self.assertEqual(bad, [])
        self.assertEqual(kernels[KERNEL]["sm_87_cuda_12.6"]["registers"], 120)
        self.assertEqual(kernels[KERNEL]["sm_87"]["registers"], 128)
        _, bad = static_gates.measure(self.both(spill_bytes=4))
        self.assertEqual(bad, [f"{KERNEL}, sm_87_cuda_12.6: spills 4, stack 0 bytes"])


class Gates(unittest.TestCase):
    def test_the_same_passes(self):
        self.assertEqual(complaints(report()), [])

    def test_spills_and_local_memory_never_pass(self):
        for bad in (report({"spill_bytes": 8}), report({"stack_bytes": 16}), report(None, {"ld.local": 1})):
            for toolkit in ("13.0", "13.2"):
                self.assertNotEqual(complaints(bad, toolkit), [])

    def test_launch_bounds_are_demanded(self):
        self.assertIn(f"{KERNEL}: no __launch_bounds__", complaints(report(None, {"threads": 0})))

    def test_fewer_blocks_never_pass(self):
        bad = complaints(report({"registers": 129}), "13.2")
        self.assertIn(f"{KERNEL}, sm_87: 1 blocks per SM < 2", bad)

    def test_another_number_passes_with_another_toolkit_only(self):
        self.assertEqual(complaints(report({"registers": 127}), "13.2"), [])
        self.assertEqual(len(complaints(report({"registers": 127}))), 1)

    def test_the_tensor_path_is_held(self):
        self.assertIn(f"{KERNEL}: no mma.sync in its PTX", complaints(report(None, {"mma.sync": 0}), "13.2"))

    def test_a_promise_is_not_for_the_budget_to_give_up(self):
        poor = report({"registers": 200})
        got, _ = static_gates.measure(poor)
        bad = complaints(poor, budget={"toolkit": "13.0", "modules": {"linear": got}})
        self.assertEqual(bad, [f"{KERNEL}, sm_87: blocks_per_sm 1 < 2, which is promised"])

    def test_every_kernel_stands_on_both_sides(self):
        whole, _ = static_gates.measure(report())
        other = copy.deepcopy(whole)
        other["mk_gone"] = other[KERNEL]
        budget = {"toolkit": "13.0", "modules": {"linear": other}}
        self.assertEqual(complaints(report(), budget=budget), ["mk_gone: in the budget, but not built"])
        self.assertEqual(
            complaints(report(), budget={"toolkit": "13.0", "modules": {}}), [f"{KERNEL}: not in the budget"])

    def test_no_toolkit_is_said_aloud(self):
        import contextlib, io, json, tempfile
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "r.json")
            path.write_text(json.dumps({"module": "linear", "dynamic_shared_bytes": {}, "images": []}))
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                self.assertEqual(static_gates.main(["budget.json", str(path)]), 0)
            self.assertTrue(out.getvalue().startswith("skipped: "))


if __name__ == "__main__":
    unittest.main()
