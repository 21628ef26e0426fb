"""Fixed policies: experts, members of a class, targets of offline evaluation."""
