"""Print the oldest allowed version of every dependency, as constraints: python .ci/oldest.py."""

import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))

if __name__ == "__main__":
    for dependency in PROJECT["project"]["dependencies"]:
        print(dependency.replace(">=", "=="))
