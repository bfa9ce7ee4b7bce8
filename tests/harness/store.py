"""Model stores made by hand, and servers that have one."""

import hashlib
import json
import os

from harness.server import Server, replay_command


def add_model(home, name, content, aliases=()):
    """A stored model with `content` as its file; its digest."""
    digest = hashlib.sha256(content).hexdigest()
    (home / "blobs").mkdir(parents=True, exist_ok=True)
    blob = home / "blobs" / f"sha256-{digest}"
    blob.write_bytes(content)
    folder, _, tag = name.partition(":")
    manifest = home / "manifests" / folder / f"{tag or 'latest'}.json"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(
        json.dumps(
            {
                "name": name,
                "aliases": list(aliases),
                "file": name.replace(":", "-") + ".gguf",
                "digest": "sha256:" + digest,
                "bytes": len(content),
                "license": "MIT",
                "source": "test",
                "checked_bytes": len(content),
                "checked_modified_ns": blob.stat().st_mtime_ns,
            }
        )
    )
    return digest


def names_in(home):
    """What the store's manifests are called, as paths below manifests/."""
    return sorted(str(p.relative_to(home / "manifests")) for p in (home / "manifests").rglob("*.json"))


def serve_with_store(folder, home, script, *flags):
    """A replay server whose store is `home`."""
    path = folder / "script.jsonl"
    path.write_text(script, encoding="utf-8")
    return Server(replay_command(path, *flags), env={**os.environ, "OMNIBUS_HOME": str(home)})
