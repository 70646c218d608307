"""How many words occur once among many, or with one person alone, counted in parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privrisk_spark.kernels.arrays import WordArray


def counted(words: WordArray) -> WordArray:
    """Count each distinct word of a part.

    Parameters
    ----------
    words : ndarray of uint64, shape (n,)

    Returns
    -------
    ndarray of uint64, shape (2, n_distinct)
        The words, ascending, and how often each occurs.
    """
    distinct, counts = np.unique(words, return_counts=True)
    result: WordArray = np.stack([distinct, counts.astype(np.uint64)])
    return result


def between(part: WordArray, number: int, ranges: int) -> WordArray:
    """Return the words of a counted part that lie in one of equal ranges of all words, with their counts."""
    low = number * 2**64 // ranges
    high = (number + 1) * 2**64 // ranges - 1
    begin = np.searchsorted(part[0], np.uint64(low), side="left")
    end = np.searchsorted(part[0], np.uint64(high), side="right")
    return part[:, begin:end]


def singles(parts: Sequence[WordArray]) -> int:
    """Number of words that occur once in all counted parts together."""
    together = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0), dtype=np.uint64)
    order = np.argsort(together[0], kind="stable")
    words, counts = together[:, order]
    if not len(words):
        return 0
    starts = np.flatnonzero(np.append(True, words[1:] != words[:-1]))
    return int(np.count_nonzero(np.add.reduceat(counts, starts) == 1))


def spanned(words: WordArray, persons: WordArray) -> WordArray:
    """Return each distinct word of a part, with the least and the greatest person who has it.

    Parameters
    ----------
    words, persons : ndarray of uint64, shape (n,)

    Returns
    -------
    ndarray of uint64, shape (3, n_distinct)
        The words, ascending; one person alone has a word whose least person is its greatest.
    """
    return _spans(np.stack([words, persons, persons]))


def alone(parts: Sequence[WordArray]) -> WordArray:
    """Return the persons, ascending and each once, who have a word nobody else has in all spanned parts together."""
    together = np.concatenate(parts, axis=1) if parts else np.zeros((3, 0), dtype=np.uint64)
    _, least, greatest = _spans(together)
    found: WordArray = np.unique(least[least == greatest])
    return found


def _spans(spans: WordArray) -> WordArray:
    if not spans.shape[1]:
        return spans
    words, least, greatest = spans[:, np.argsort(spans[0], kind="stable")]
    starts = np.flatnonzero(np.append(True, words[1:] != words[:-1]))
    result: WordArray = np.stack(
        [words[starts], np.minimum.reduceat(least, starts), np.maximum.reduceat(greatest, starts)]
    )
    return result
