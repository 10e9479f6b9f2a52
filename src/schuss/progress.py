"""Work in chunks, with a bar where it was asked for."""

from collections.abc import Iterator


def chunks(total: int, size: int, label: str, show: bool) -> Iterator[int]:
    """Sizes that add up to `total`, at most `size` each, with a progress bar if `show`."""
    sizes = [size] * (total // size) + ([total % size] if total % size else [])
    if not show:
        yield from sizes
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        for chunk in sizes:
            yield chunk
            bar.advance(task, chunk)
