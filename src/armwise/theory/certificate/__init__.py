"""Certified regret: from the rounds that were played, a bound on regret that holds whoever chose the arms."""

from armwise.theory.certificate.certify import certificate
from armwise.theory.certificate.links import LOGISTIC, Link
from armwise.theory.certificate.rounds import Rounds
from armwise.theory.certificate.statement import Certificate, Fit

__all__ = ["LOGISTIC", "Certificate", "Fit", "Link", "Rounds", "certificate"]
