"""Users with known truth: each model simulates clicks, gives their probabilities, and can be fitted to a log."""

from clickmix.clicks.dcm import DependentClick
from clickmix.clicks.fitting import Fit, Score
from clickmix.clicks.logfile import read_sessions, write_sessions
from clickmix.clicks.pbm import PositionBased
from clickmix.clicks.presets import preset
from clickmix.clicks.sessions import ListCounts, SessionLog, Sessions, sessions_from_columns
from clickmix.clicks.trust import Trust
from clickmix.clicks.ubm import UserBrowsing
from clickmix.clicks.user import User
from clickmix.clicks.yandex import read_yandex

__all__ = [
    "DependentClick",
    "Fit",
    "ListCounts",
    "PositionBased",
    "Score",
    "SessionLog",
    "Sessions",
    "Trust",
    "User",
    "UserBrowsing",
    "preset",
    "read_sessions",
    "read_yandex",
    "sessions_from_columns",
    "write_sessions",
]
