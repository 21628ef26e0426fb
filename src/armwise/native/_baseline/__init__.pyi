from armwise.numerics._baseline import (
    choice as choice,
)
from armwise.numerics._baseline import (
    cofine as cofine,
)
from armwise.numerics._baseline import (
    decisions as decisions,
)
from armwise.numerics._baseline import (
    experts as experts,
)
from armwise.numerics._baseline import (
    features as features,
)
from armwise.numerics._baseline import (
    fits as fits,
)
from armwise.numerics._baseline import (
    gp as gp,
)
from armwise.numerics._baseline import (
    gp_budget as gp_budget,
)
from armwise.numerics._baseline import (
    kary as kary,
)
from armwise.numerics._baseline import (
    kernels as kernels,
)
from armwise.numerics._baseline import (
    likelihood as likelihood,
)
from armwise.numerics._baseline import (
    logistic as logistic,
)
from armwise.numerics._baseline import (
    maps as maps,
)
from armwise.numerics._baseline import (
    mixture as mixture,
)
from armwise.numerics._baseline import (
    nested as nested,
)
from armwise.numerics._baseline import (
    plain as plain,
)
from armwise.numerics._baseline import (
    policies as policies,
)
from armwise.numerics._baseline import (
    regression as regression,
)
from armwise.numerics._baseline import (
    requests as requests,
)
from armwise.numerics._baseline import (
    ridge as ridge,
)
from armwise.numerics._baseline import (
    sequences as sequences,
)
from armwise.numerics._baseline import (
    spectral as spectral,
)
from armwise.numerics._baseline import (
    staged as staged,
)
from armwise.numerics._baseline import (
    thompson as thompson,
)
from armwise.numerics._baseline import (
    truncated as truncated,
)
from armwise.numerics._baseline import (
    weights as weights,
)
from armwise.numerics._baseline import (
    winning as winning,
)
