"""Certified regret: from the rounds that were played, a bound on regret that holds whoever chose the arms."""

from armwise.certify.answer import Certificate, Fit
from armwise.certify.links import LOGISTIC, Link
from armwise.certify.regret import certificate
from armwise.certify.rounds import Rounds

__all__ = ["LOGISTIC", "Certificate", "Fit", "Link", "Rounds", "certificate"]
