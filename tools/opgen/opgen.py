#!/usr/bin/env python3
"""Generates everything that follows from the op records: see CONTRIBUTING.md and dialects/ops/OpBase.td.

opgen.py --json ops.json --out build        the C++ includes and the sample table
opgen.py --json ops.json --root . [--check] the committed stub and reference page (--check: fail if they are stale)
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp
import grads
import pytable
import records
import scalars


def write(path, text):
    """Writes only what changed, so that nothing is rebuilt for nothing."""
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return False
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return True


def outputs(ops):
    op = "runtime/op/"
    rules = "runtime/rules/"
    files = {
        op + "OpIds.inc": cpp.op_ids(ops),
        op + "Fallible.inc": cpp.fallible(ops),
        op + "ScalarPrims.inc": cpp.scalar_prims(ops),
        op + "OpArgs.inc": cpp.op_args(ops),
        op + "Functional.inc": cpp.functional(ops),
        op + "OpParams.inc": cpp.params_table(ops),
        op + "OpTable.inc": cpp.op_table(ops),
        op + "MetaDecls.inc": cpp.meta_decls(ops),
        op + "MetaBoxedDecls.inc": cpp.meta_boxed_decls(ops),
        op + "MetaBoxes.inc": cpp.meta_boxes(ops),
        op + "KernelDecls.inc": cpp.kernel_decls(ops),
        op + "KernelList.inc": cpp.kernel_list(ops),
        op + "ScalarOps.inc": scalars.functions(ops),
        op + "ScalarTable.inc": scalars.table(ops),
        "kernels/elementwise/ElementwiseKernels.inc": scalars.kernels(ops),
        "kernels/elementwise/Wide.inc": scalars.wide(ops),
        rules + "RuleDecls.inc": cpp.rule_decls(ops),
        rules + "RuleCases.inc": grads.rule_cases(ops),
        rules + "VjpCases.inc": grads.vjp_cases(ops),
        "python/binding/PyTable.inc": pytable.table(ops),
        "python/dlc/_op_samples.py": pytable.samples(ops),
        "schemas.txt": pytable.schemas(ops),
    }
    for family in records.FAMILIES:
        files[f"{rules}Vjp{family}.inc"] = grads.rules(ops, family)
        files[f"{rules}Boxes{family}.inc"] = grads.boxes(ops, family)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, help="llvm-tblgen --dump-json of dialects/ops/Ops.td")
    parser.add_argument("--out", help="the build folder")
    parser.add_argument("--stamp", help="a file to touch when done")
    parser.add_argument("--root", help="the source folder: write the committed files")
    parser.add_argument("--check", action="store_true", help="with --root: fail if a committed file is stale")
    args = parser.parse_args()
    try:
        ops = records.load(args.json)
    except records.RecordError as e:
        sys.exit(f"opgen: the records are wrong\n{e}")
    for op in ops:
        grads.analyse(op)
        if op.has_scalar:
            op.extra["variants"] = scalars.variants(op)
    if args.out:
        for name, text in outputs(ops).items():
            write(os.path.join(args.out, name), text)
    if args.stamp:
        with open(args.stamp, "w"):
            pass
    if args.root:
        stale = []
        for name, text in (("python/dlc/ops.pyi", pytable.stub(ops)), ("docs/ops.md", pytable.page(ops))):
            path = os.path.join(args.root, name)
            if args.check:
                fresh = os.path.exists(path) and open(path, encoding="utf-8").read() == text
                stale += [] if fresh else [name]
            else:
                write(path, text)
        if stale:
            sys.exit(f"opgen: stale: {' '.join(stale)}\nrun: ninja -C build opgen-committed")


if __name__ == "__main__":
    main()
