"""Collections on disk.   folder -> Collection

Folders with train, vali (or valid) and test as .txt, .txt.gz or .parquet; folders of such folders Fold1, Fold2, ...;
and Yahoo!'s, where names begin with set1 or set2: give FOLDER/set1.
"""

from __future__ import annotations

import re
from pathlib import Path

from clickmix.errors import InputError
from clickmix.features.files import read_features
from clickmix.features.split import Collection, Split, widened
from clickmix.lab.collections.cache import read_cached
from clickmix.lab.collections.known import differences, recognise

NAMES = {"train": ("train",), "vali": ("vali", "valid"), "test": ("test",)}
SUFFIXES = (".txt", ".txt.gz", ".parquet")
HELD_OUT = 10  # without a vali file, one training query in this many becomes vali


def load_collection(path: str | Path, *, fold: int = 1, cache: str | Path | None = None) -> Collection:
    """The collection in folder `path`; if it has folds, the one with number `fold`. Text is read through the cache.

    A published collection gets its name, and notes on sizes that differ from the published ones.
    """
    path = Path(path)
    files, found_fold = _files(path, fold)
    splits = {
        part: read_features(file) if file.suffix == ".parquet" else read_cached(file, cache=cache)
        for part, file in files.items()
    }
    # A sparse file may not name the last features that another one names.
    width = max(split.features.shape[1] for split in splits.values())
    splits = {part: widened(split, width) for part, split in splits.items()}
    known = recognise(path.absolute().as_posix(), splits)
    notes = differences(known, splits, fold=found_fold) if known else ()
    if "vali" not in splits:
        splits |= _held_out(splits["train"])
        notes += (f"There is no vali file, so the last {splits['vali'].queries:,} training queries are vali.",)
    largest_grade = max(1, *(int(split.grade.max()) for split in splits.values()))
    name = known.name if known else path.absolute().name
    return Collection(name, splits["train"], splits["vali"], splits["test"], largest_grade, notes)


def collection_files(path: str | Path, *, fold: int = 1) -> tuple[Path, ...]:
    """The files that `load_collection` reads."""
    return tuple(_files(Path(path), fold)[0].values())


def _files(path: Path, fold: int) -> tuple[dict[str, Path], int | None]:
    """The files of train, test and, if there is one, vali; and the number of the fold if there are folds."""
    folder, prefix, found_fold = _place(path, fold)
    found = {part: _file(folder, prefix, names) for part, names in NAMES.items()}
    files = {part: file for part, file in found.items() if file is not None}
    if not {"train", "test"} <= set(files):
        raise InputError(_not_found(path, folder, prefix))
    return files, found_fold


def _place(path: Path, fold: int) -> tuple[Path, str, int | None]:
    """The folder of the three files, the prefix of their names, and the number of the fold if there are folds."""
    if not path.is_dir():
        return path.parent, f"{path.name}.", None
    folds = sorted(folder.name for folder in path.glob("Fold[0-9]*") if folder.is_dir())
    if folds and f"Fold{fold}" not in folds:
        raise InputError(f"{path}: no Fold{fold}; found {', '.join(folds)}. Choose one of these with fold.")
    if folds:
        return path / f"Fold{fold}", "", fold
    own = re.fullmatch(r"Fold(\d+)", path.absolute().name)
    return path, "", int(own[1]) if own else None


def _file(folder: Path, prefix: str, names: tuple[str, ...]) -> Path | None:
    possible = (folder / f"{prefix}{name}{suffix}" for name in names for suffix in SUFFIXES)
    return next((file for file in possible if file.is_file()), None)


def _not_found(path: Path, folder: Path, prefix: str) -> str:
    names = sorted(file.name for file in folder.glob("*") if file.name.startswith(prefix)) if folder.is_dir() else []
    found = f"no train and test files there; found {', '.join(names[:8]) or 'nothing'}"
    if not path.is_dir() and not names:
        found = "this is a file" if path.exists() else "no such folder"
    return (
        f"{path}: {found}. Expected a folder with train, vali and test as .txt, .txt.gz or .parquet, or Fold1, Fold2, "
        "... with these; for Yahoo! give FOLDER/set1 or FOLDER/set2."
    )


def _held_out(train: Split) -> dict[str, Split]:
    kept = train.queries - max(1, train.queries // HELD_OUT)
    if kept < 1:
        raise InputError("There is no vali file, and the only training query cannot be split. Add a vali file.")
    return {"train": train.part(0, kept), "vali": train.part(kept, train.queries)}
