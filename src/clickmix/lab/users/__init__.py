"""Users with known truth: each model simulates clicks, computes their probabilities, and can be fitted to a log."""

from clickmix.lab.families import USERS
from clickmix.lab.users.cascade import Cascade
from clickmix.lab.users.dbn import DynamicBayesian
from clickmix.lab.users.dcm import DependentClick
from clickmix.lab.users.fitting import Score, UserFit
from clickmix.lab.users.logfile import read_sessions, write_sessions
from clickmix.lab.users.pbm import PositionBased
from clickmix.lab.users.presets import preset, preset_title
from clickmix.lab.users.sdbn import SimplifiedDynamicBayesian
from clickmix.lab.users.sessions import ListCounts, SessionLog, Sessions, sessions_from_columns
from clickmix.lab.users.trust import Trust
from clickmix.lab.users.ubm import UserBrowsing
from clickmix.lab.users.user import User
from clickmix.lab.users.yandex import read_yandex

__all__ = [
    "USERS",
    "Cascade",
    "DependentClick",
    "DynamicBayesian",
    "ListCounts",
    "PositionBased",
    "Score",
    "SessionLog",
    "Sessions",
    "SimplifiedDynamicBayesian",
    "Trust",
    "User",
    "UserBrowsing",
    "UserFit",
    "preset",
    "preset_title",
    "read_sessions",
    "read_yandex",
    "sessions_from_columns",
    "write_sessions",
]
