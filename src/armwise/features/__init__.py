"""Maps from what people have to rows of numbers; ``encoding`` does it for names and JSON.

It may import core and native.
Invariant: a fitted map is saved with its agent, and gives the same rows after loading.

>>> import armwise as aw
>>> aw.features.Encoder(dim=64).rows_of({"device": "phone"}, ["red", "green"]).shape
(2, 64)
"""

from armwise.features.compose import Bins as Bins
from armwise.features.compose import Chain as Chain
from armwise.features.compose import Cross as Cross
from armwise.features.compose import Join as Join
from armwise.features.encoding.encoder import Encoder as Encoder
from armwise.features.encoding.encoder import Feature as Feature
from armwise.features.maps import Columns as Columns
from armwise.features.maps import FeatureMap as FeatureMap
from armwise.features.maps import Fourier as Fourier
from armwise.features.standardise import Scale as Scale
from armwise.features.text import HashedText as HashedText
from armwise.features.text import hashed_text as hashed_text
