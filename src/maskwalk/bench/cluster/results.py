"""What comes from a worker: versions, results and the files that a job left, or Ray's own words."""

from pathlib import Path
from typing import Any

from maskwalk.bench.cluster.worker import versions
from maskwalk.bench.plan import Job
from maskwalk.bench.run import Failure
from maskwalk.errors import MaskwalkError
from maskwalk.resources import write_file


def taken(job: Job, answer: dict[str, Any], files: dict[str, bytes], host: str) -> Any:
    """The result, once the files that came with it are on this disk."""
    if "failure" in answer:
        return Failure(**answer["failure"])
    result = answer["result"]
    if result.get("key", job.key) != job.key:
        return Failure(f"{host} has other files than this machine: its result has another key.")
    if files:
        _keep(files, Path(job.arguments[job.leaves]))
    return result


def _keep(files: dict[str, bytes], folder: Path) -> None:
    try:
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_file(folder / name, data)
    except OSError as problem:
        raise MaskwalkError(
            f"Cannot write {problem.filename or folder}: {problem.strerror}. The records before "
            "this one are intact; make room and run the same command again to go on."
        ) from None


def check_versions(about: dict[str, Any]) -> None:
    """Refuses a node whose results may differ from those of this machine."""
    here = versions()
    for name, there in about["versions"].items():
        if there != here[name]:
            raise MaskwalkError(
                f"The node {about['host']} has {name} {there}, this machine has {here[name]}; "
                "results are the same only where all have the same. Install the same on all nodes."
            )


def first_line(problem: BaseException) -> str:
    """The line of Ray's message that says what happened."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    told = [line for line in lines if "Error:" in line or line.startswith("The actor")]
    return (told or lines or [type(problem).__name__])[-1][:300]
