"""Certified regret: a bound computed from the rounds that were played.

It may import core only.
Invariant: the certificate is above the true regret at least as often as its level promises.
"""

from armwise.theory.certificate.certify import certificate as certificate
from armwise.theory.certificate.links import LOGISTIC as LOGISTIC
from armwise.theory.certificate.links import Link as Link
from armwise.theory.certificate.played_rounds import Rounds as Rounds
from armwise.theory.certificate.statement import Certificate as Certificate
from armwise.theory.certificate.statement import Fit as Fit
from armwise.theory.certificate.statement import RejectedCertificateWarning as RejectedCertificateWarning
