"""Build the extension's jars with sbt: build hook of the wheel, and script for a source checkout.

    python python/build_hook.py jars          build the jars, unless they are up to date
    python python/build_hook.py sbt ARGS...   run sbt in the checkout

The program uses sbt from PATH, or else a launcher that `jgo` fetches. Errors are one message on
standard error and a non-zero exit code, without a traceback.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent
MINIMUM_JAVA = 17

# Files that the jars depend on. Other files can change without a new build.
SOURCES = (
    "LICENSE",
    "build.sbt",
    "project/*.sbt",
    "project/*.scala",
    "project/build.properties",
    "jvm/src/main/**/*",
)

# File in the folder of the jars, with the digests of the sources and of each jar.
RECORD = "built.json"

JAVA_ADVICE = (
    f"Building Apportion needs Java {MINIMUM_JAVA} or newer: install a JDK, set JAVA_HOME to its "
    "folder, and try again"
)
SHOWN_LINES = 30
# Exit code of shells after Ctrl-C.
STOPPED = 130


class BuildError(Exception):
    """The jars cannot be built. The message has the reason and the next step."""


class JarsHook(BuildHookInterface[Any]):
    """Bundles the jars as `apportion/jars/*.jar`. Editable installs leave them in place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the jars, and add only these jars to the wheel unless `version` is `editable`."""
        try:
            jars = build_jars(Path(self.root))
            if version != "editable":
                folder = Path(self.root) / "target" / "wheel"
                bundled = {str(stored(jar, folder)): f"apportion/jars/{jar.name}" for jar in jars}
                build_data["force_include"].update(bundled)
        except (BuildError, OSError) as error:
            sys.exit(f"error: {message(error, Path(self.root))}")


def stored(jar: Path, folder: Path) -> Path:
    """Write a copy of a jar without compression, and return its path.

    The wheel compresses it as a whole, which saves a quarter of the bytes: its classes are alike.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / jar.name
    with zipfile.ZipFile(jar) as classes, zipfile.ZipFile(copy, "w") as copied:
        for file in classes.infolist():
            copied.writestr(zipfile.ZipInfo(file.filename, file.date_time), classes.read(file))
    return copy


def build_jars(root: Path) -> list[Path]:
    """Return the jars of the checkout at `root`. Build them first unless they are up to date.

    Raises `BuildError` if the build fails.
    """
    folder, sources = root / "target" / "jars", fingerprint(root)
    if jars := up_to_date(folder, sources):
        return jars
    command = sbt_command(root, ["jars"])
    print("Building the jars with sbt (the first build is slow) ...", file=sys.stderr, flush=True)
    run = subprocess.run(
        command,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if run.returncode != 0:
        raise BuildError(sbt_failure(root, command, run.returncode, run.stdout))
    jars = [folder / name for name in (folder / "jars.txt").read_text("utf-8").split()]
    record = {"sources": sources, "jars": {jar.name: file_digest(jar) for jar in jars}}
    # Replaced at once, so that a failure leaves no half of a record.
    beside = folder / f"{RECORD}.new"
    beside.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    beside.replace(folder / RECORD)
    return jars


def up_to_date(folder: Path, sources: str) -> list[Path]:
    """Return the jars in `folder`, or none if a jar or the sources have changed since the build."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
        built = {folder / name: digest for name, digest in record["jars"].items()}
        unchanged = all(file_digest(jar) == digest for jar, digest in built.items())
        return list(built) if unchanged and record["sources"] == sources else []
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        # A record that was cut off, such as by a full disk, is as good as none.
        return []


def fingerprint(root: Path) -> str:
    """Return the digest of all sources of the jars in the checkout at `root`."""
    files = {path for pattern in SOURCES for path in root.glob(pattern) if path.is_file()}
    digests = {path.relative_to(root).as_posix(): file_digest(path) for path in files}
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of the file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sbt_command(root: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs sbt with `arguments` in the checkout at `root`.

    Raises `BuildError` if Java is missing or too old, or if sbt is not available.
    """
    java = find_java()
    options = ["-Xmx2g", "-Dfile.encoding=UTF-8", "-Dsbt.server.autostart=false"]
    # The compiler runs for one or two minutes, in which the JVM's second compiler never pays off.
    options += ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
    if not sys.stdout.isatty():
        options += ["-Dsbt.color=false", "-Dsbt.supershell=false"]
    if sbt := shutil.which("sbt"):
        return [sbt, *(f"-J{option}" for option in options), *arguments]
    return [java, *options, "-jar", str(sbt_launcher(root)), *arguments]


def find_java() -> str:
    """Return the path of `java` in JAVA_HOME, or on PATH if JAVA_HOME is not set.

    sbt and Spark use the same rule. Raises `BuildError` if Java is missing, broken or too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=Path(home, "bin")) if home else shutil.which("java")
    if java is None:
        missing = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java on PATH"
        raise BuildError(f"{missing}. {JAVA_ADVICE}")
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"{java} does not run: {error.strerror}. {JAVA_ADVICE}") from error
    where = f"{java} ({'from JAVA_HOME' if home else 'on PATH'})"
    major = java_major(run.stderr)
    if major is None:
        printed = run.stderr.strip() or "nothing"
        raise BuildError(f"{where} does not print its version, but: {printed}\n{JAVA_ADVICE}")
    if major < MINIMUM_JAVA:
        raise BuildError(f"{where} is Java {major}. {JAVA_ADVICE}")
    return java


def java_major(printed: str) -> int | None:
    """Return the major version in the output of `java -version`: 17 for 17.0.15, 8 for 1.8.0_392.

    Returns None if there is no version.
    """
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match[1]) if match else None


def sbt_launcher(root: Path) -> Path:
    """Return the launcher jar for the sbt version of the checkout at `root`.

    Raises `BuildError` if the jar is not in the local Maven repository and cannot be fetched, and
    if it has another digest than `sbt.launcher.sha256` in `project/build.properties`.
    """
    from jgo.maven import MavenContext

    artifact = f"org.scala-sbt:sbt-launch:{build_property(root, 'sbt.version')}"
    group, name, version = artifact.split(":")
    try:
        project = MavenContext(timeout=60).project(group, name)
        launcher = Path(project.at_version(version).artifact().resolve())
    except Exception as error:  # jgo does not document its exceptions.
        raise BuildError(
            f"sbt is not on PATH, and its launcher {artifact} cannot be fetched from Maven "
            f"Central: {error}. Check the network or install sbt, then try again"
        ) from error
    # jgo only warns about a wrong checksum.
    digest, allowed = file_digest(launcher), build_property(root, "sbt.launcher.sha256")
    if digest != allowed:
        raise BuildError(
            f"{launcher} has the SHA-256 digest {digest}, and {build_properties(root)} allows "
            f"{allowed}. Delete the file, then try again"
        )
    return launcher


def build_properties(root: Path) -> Path:
    """Return the file with the version of sbt in the checkout at `root`."""
    return root / "project" / "build.properties"


def build_property(root: Path, name: str) -> str:
    """Return a property in `project/build.properties`.

    Raises `BuildError` if the file does not set it.
    """
    properties = build_properties(root)
    line = rf"^\s*{re.escape(name)}\s*=\s*(\S+)"
    match = re.search(line, properties.read_text("utf-8"), re.MULTILINE)
    if match is None:
        raise BuildError(f"{properties} has no line {name}=...")
    return match[1]


def sbt_failure(root: Path, command: Sequence[str], code: int, output: str) -> str:
    """Return the error message for an exit code of sbt, with its last lines and its command."""
    lines = output.rstrip().splitlines()[-SHOWN_LINES:]
    shown = "\n".join(f"    {line}" for line in lines) or "    (no output)"
    again = f"cd {shlex.quote(str(root))} && {shlex.join(command)}"
    return f"sbt failed with exit code {code}. Its last lines:\n{shown}\nTo run it again: {again}"


def message(error: BuildError | OSError, root: Path) -> str:
    """Return the reason of an error in one line, with the file that it is about."""
    if isinstance(error, BuildError):
        return str(error)
    reason = error.strerror or str(error)
    return f"cannot build in {root}: {reason}{f': {error.filename}' if error.filename else ''}"


def main(arguments: Sequence[str]) -> int:
    """Run the script with these command line arguments, and return its exit code."""
    try:
        match arguments:
            case ["jars"]:
                for jar in build_jars(ROOT):
                    print(jar)
                return 0
            case ["sbt", *sbt_arguments]:
                return subprocess.run(
                    sbt_command(ROOT, sbt_arguments), cwd=ROOT, check=False
                ).returncode
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (BuildError, OSError) as error:
        print(f"error: {message(error, ROOT)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: stopped. Run the same command again to start over", file=sys.stderr)
        return STOPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
