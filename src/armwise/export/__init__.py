"""A learnt policy that runs elsewhere: evaluators in JavaScript, Python and SQL, other formats, and the way back.

It may import offline, features and core.
Invariant: what an evaluator answers is the distribution of the agent that was exported, or the export is refused.

>>> import armwise as aw, tempfile, os
>>> folder = tempfile.mkdtemp()
>>> policy = aw.SquareCB(dim=2, n_arms=2).export(os.path.join(folder, "policy.json"))
>>> aw.export.write(policy, os.path.join(folder, "policy.mjs"))
"""

from armwise.core.policy_document import CannotExport as CannotExport
from armwise.core.policy_document import Policy as Policy
from armwise.export.eppo import EppoColumns as EppoColumns
from armwise.export.eppo import eppo as eppo
from armwise.export.eppo import eppo_flag as eppo_flag
from armwise.export.evaluators import javascript as javascript
from armwise.export.evaluators import python as python
from armwise.export.evaluators import write as write
from armwise.export.sql import sql as sql
