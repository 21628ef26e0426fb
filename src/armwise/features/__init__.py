"""From names to numbers: the encoder of the decision service, and feature maps.

>>> import armwise as aw
>>> aw.features.Encoder(dim=64).rows_of({"device": "phone"}, ["red", "green"]).shape
(2, 64)
"""

from armwise.features.encoder import Encoder as Encoder
from armwise.features.encoder import Feature as Feature
from armwise.features.maps import Columns as Columns
from armwise.features.maps import FeatureMap as FeatureMap
from armwise.features.maps import Fourier as Fourier
