"""Users with known truth: each model simulates clicks, gives their probabilities, and can be fitted to a log."""

from clickmix.lab.users.dcm import DependentClick
from clickmix.lab.users.fitting import Fit, Score
from clickmix.lab.users.logfile import read_sessions, write_sessions
from clickmix.lab.users.pbm import PositionBased
from clickmix.lab.users.presets import preset
from clickmix.lab.users.sessions import ListCounts, SessionLog, Sessions, sessions_from_columns
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.ubm import UserBrowsing
from clickmix.lab.users.user import User
from clickmix.lab.users.yandex import read_yandex

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
