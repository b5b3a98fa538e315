"""What tests of folds by kernels share."""

from __future__ import annotations

import pytest

from tests.twins import CompiledLoads


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> CompiledLoads:
    return CompiledLoads(monkeypatch)
