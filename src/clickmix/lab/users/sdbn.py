"""SimplifiedDynamicBayesian: the dynamic Bayesian user who stops only when satisfied.   relevance <-> clicks

O. Chapelle, Y. Zhang: A Dynamic Bayesian Network Click Model for Web Search Ranking, WWW 2009. They estimate it from
shares: clicks among results down to the last click, last clicks among clicks. That assumes that everybody without a
later click was satisfied. Here it is fitted by likelihood: some went on and found nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from clickmix.lab.families import USERS
from clickmix.lab.users.dbn import SATISFIED_IRRELEVANT, SATISFIED_RELEVANT, DynamicBayesian
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.user import TOP


@dataclass(frozen=True, kw_only=True, eq=False)
class SimplifiedDynamicBayesian(DynamicBayesian):
    """People examine results from the top, one after the other, until a result they clicked satisfies them.

    >>> user = SimplifiedDynamicBayesian(trust=Trust.perfect(2))
    >>> user.click_probabilities([[0.0, 1.0]]).tolist()
    [[0.0, 1.0]]
    """

    continuation: float = field(default=1.0, init=False)

    fixed_continuation = 1.0

    @classmethod
    def of(cls, *, continuation: float, trust: Trust) -> Self:
        """A user who is satisfied by a clicked result if and only if it is relevant; the continuation is always 1."""
        return cls(trust=trust)


@USERS.register("sdbn", help="reads from the top until a clicked result satisfies", options=(TOP,))
def simplified_dynamic_bayesian(*, top: int = 10) -> SimplifiedDynamicBayesian:
    """A user with the paper's trust."""
    return SimplifiedDynamicBayesian(
        satisfied_relevant=SATISFIED_RELEVANT, satisfied_irrelevant=SATISFIED_IRRELEVANT, trust=Trust.paper(top)
    )
