"""The rankings that RoSHAP is compared with: one protocol, one file per ranker.

A ranker sees training rows only, and one model that was fitted to a part of them.
"""

from roshap.baselines.base import Ranked, Ranker, RankingData, order
from roshap.baselines.gain import Gain
from roshap.baselines.information_gain import InformationGain
from roshap.baselines.lime import Lime
from roshap.baselines.permutation import Permutation
from roshap.baselines.registry import RANKERS, make_rankers
from roshap.baselines.single_shap import SingleShap

__all__ = [
    "RANKERS",
    "Gain",
    "InformationGain",
    "Lime",
    "Permutation",
    "Ranked",
    "Ranker",
    "RankingData",
    "SingleShap",
    "make_rankers",
    "order",
]
