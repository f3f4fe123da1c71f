"""Spans are pairs (lo, hi) with lo < hi; hi is not part of the span."""


def merge(spans):
    """Join spans that overlap or touch; sorted."""
    out = []
    for lo, hi in sorted(spans):
        if out and lo < out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], hi))
        else:
            out.append((lo, hi))
    return out


def total(spans):
    """How much the spans cover together."""
    return sum(hi - lo for lo, hi in merge(spans))
