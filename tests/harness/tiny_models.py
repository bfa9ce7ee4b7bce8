"""The tiny random models (tests/data/make_tiny_models.py), made once into out/tiny_models."""

import subprocess
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def tiny_model(name):
    """The path of NAME.gguf."""
    folder = _ROOT / "out" / "tiny_models"
    # The system's python3: scripts/packages.txt names its NumPy. A second run does nothing.
    subprocess.run(["python3", str(_ROOT / "tests/data/make_tiny_models.py"), str(folder)], check=True, timeout=120,
                   env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"})
    return folder / f"{name}.gguf"
