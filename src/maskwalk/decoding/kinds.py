"""Three kinds of results: what a number can be trusted to mean.

exact        one token per round, or a rule that is shown to have the same law (speculation): where
             the sequences are wrong, the denoiser is
factorised   positions chosen before anything is drawn there, then drawn from the denoiser's own
             marginals: its only fault is that tokens drawn together are drawn apart, and replay
             states it in nats (KL)
shaped       everything else: draw first and keep the likely, take tokens back, truncate, sharpen.
             Its sequences may look better than the law's because they are others. It is measured
             against one-at-a-time decoding of the same denoiser, marked †, and never leads unmarked

A sampler says its kind in its class; draws that are not exact make any result a shaped one. A rule
that asks several questions in a round and chooses by the answers is not exact merely because it
reveals one token: only a factorised one that asked once a round is.
"""

EXACT, FACTORISED, SHAPED = "exact", "factorised", "shaped"
KINDS = (EXACT, FACTORISED, SHAPED)
MARK = "†"  # stands beside every shaped result


def result_kind(sampler_kind: str, exact_draws: bool, one_at_a_time: bool) -> str:
    """The kind of a result, from its sampler's, its draws, and whether every round asked
    once and revealed at most one token."""
    if not exact_draws:
        return SHAPED
    return EXACT if sampler_kind == FACTORISED and one_at_a_time else sampler_kind
