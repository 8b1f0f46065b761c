"""Compose fairseq's settings without Hydra, which copies all of them hundreds of times: a second per run.

fairseq turns a command line into a list of overrides, such as `common.seed=3`, and lets Hydra apply them to
its structured configuration. This module only applies them: fairseq has no other source of settings, unless a
folder of YAML files is named.
"""

from collections.abc import Sequence
from typing import Any

from seedbed.models.fairseq_launcher import prepare_import

prepare_import()

from fairseq.dataclass.configs import FairseqConfig  # noqa: E402
from hydra.core.config_store import ConfigStore  # noqa: E402
from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: E402
from omegaconf import OmegaConf, open_dict  # noqa: E402


def compose(name: str, overrides: Sequence[str], strict: bool = False) -> Any:
    """fairseq's configuration with the overrides that its own parser makes from a command line.

    For these, the result equals `hydra.experimental.compose("config", overrides, False)`. Sweeps (`a,b`),
    deletions, and defaults of sections that the parser always sets are not supported.

    Args:
        name: unused; fairseq has one configuration.
        overrides: `SECTION.KEY=VALUE`, and `SECTION=NAME` for a section from fairseq's registries.
        strict: unused; unknown keys of a section are added.
    """
    config = OmegaConf.structured(FairseqConfig)
    with open_dict(config):
        for override in OverridesParser.create().parse_overrides(list(overrides)):
            section, _, key = override.key_or_group.partition(".")
            if key:
                with open_dict(config[section]):
                    OmegaConf.update(config, override.key_or_group, override.value(), merge=False)
            else:
                config[section] = ConfigStore.instance().load(f"{section}/{override.value()}.yaml").node
    return config
