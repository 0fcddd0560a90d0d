"""Generate the protobuf modules from the `.proto` files; with `--check`, say whether they are up to date.

`python -m brokers.rpc.generate [--check]`
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent

PLUGINS: Final = ("mypy", "mypy_grpc")


def generate(target: Path) -> list[Path]:
    """Write the modules for every `.proto` below `target`, in the folders that they have in the project."""
    from grpc_tools import protoc

    protos = [str(path.relative_to(ROOT)) for path in sorted(HERE.glob("*.proto"))]
    outputs = [f"--{kind}_out={target}" for kind in ("python", "grpc_python")]
    outputs += [f"--{kind}_out=quiet:{target}" for kind in PLUGINS]
    plugins = [f"--plugin=protoc-gen-{kind}={Path(sys.executable).with_name(f'protoc-gen-{kind}')}" for kind in PLUGINS]
    code = protoc.main(["protoc", f"-I{ROOT}", *plugins, *outputs, *protos])
    if code != 0:
        sys.exit(f"protoc failed with {code}")
    return sorted((target / HERE.relative_to(ROOT)).glob("*_pb2*"))


def main() -> int:
    if "--check" not in sys.argv[1:]:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        stale = [path.name for path in generate(Path(folder)) if not _same(path, HERE / path.name)]
    if stale:
        print(f"not up to date: {', '.join(stale)}; run: make proto", file=sys.stderr)
    return 1 if stale else 0


def _same(fresh: Path, kept: Path) -> bool:
    return kept.exists() and fresh.read_bytes() == kept.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
