from armwise.native._baseline import (
    choice as choice,
)
from armwise.native._baseline import (
    cofine as cofine,
)
from armwise.native._baseline import (
    decisions as decisions,
)
from armwise.native._baseline import (
    experts as experts,
)
from armwise.native._baseline import (
    features as features,
)
from armwise.native._baseline import (
    fits as fits,
)
from armwise.native._baseline import (
    gp as gp,
)
from armwise.native._baseline import (
    gp_budget as gp_budget,
)
from armwise.native._baseline import (
    kary as kary,
)
from armwise.native._baseline import (
    kernels as kernels,
)
from armwise.native._baseline import (
    likelihood as likelihood,
)
from armwise.native._baseline import (
    logistic as logistic,
)
from armwise.native._baseline import (
    maps as maps,
)
from armwise.native._baseline import (
    mixture as mixture,
)
from armwise.native._baseline import (
    nested as nested,
)
from armwise.native._baseline import (
    plain as plain,
)
from armwise.native._baseline import (
    policies as policies,
)
from armwise.native._baseline import (
    regression as regression,
)
from armwise.native._baseline import (
    requests as requests,
)
from armwise.native._baseline import (
    ridge as ridge,
)
from armwise.native._baseline import (
    sequences as sequences,
)
from armwise.native._baseline import (
    spectral as spectral,
)
from armwise.native._baseline import (
    staged as staged,
)
from armwise.native._baseline import (
    thompson as thompson,
)
from armwise.native._baseline import (
    truncated as truncated,
)
from armwise.native._baseline import (
    weights as weights,
)
from armwise.native._baseline import (
    winning as winning,
)
