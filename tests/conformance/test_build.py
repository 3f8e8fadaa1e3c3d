"""What the build changes of the suite's sources, in texts that have their shapes."""

from pathlib import Path

import pytest

from bench.conformance import build
from bench.conformance.build import fit_tools, silence_structures, sources, trim_package
from vkharness.findings import UserError

PACKAGE = """\
#include "vktMemoryTests.hpp"
#include "vktElsewhereTests.hpp"
#include "tcuPlatform.hpp"

void createGlslTests(tcu::TestCaseGroup *glslTests)
{
    add();
}

tcu::TestCaseGroup *createGlslTests(tcu::TestContext &testCtx, const std::string &name)
{
    return other();
}

void TestPackage::init(void)
{
    addRootChild("memory", m_caseListFilter, memory::createTests);
    addRootChild("draw", m_caseListFilter, Draw::createTests);
}
"""
PRINTERS = """\
std::ostream& operator<< (std::ostream& s, Handle v) { return s << v.internal; }
std::ostream& operator<< (std::ostream& s, const VkOne& value)
{
	s << "VkOne = {\\n";
	return s;
}
const char* getName (VkTwo value)
{
	return "two";
}
std::ostream& operator<< (std::ostream& s, const VkThree& value)
{
	s << value.member;
	return s;
}
"""
VALIDATOR = """\
    env = SPV_ENV_VULKAN_1_4;
    validator_options.SetOld(true);
    validator_options.SetNew(true);
    spvValidatorOptionsSetNew(options, true);
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one source in each folder, and one that is left out."""
    for folder in (*build.SOURCES, build.VULKAN, *build.TESTS):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "kept.cpp").touch()
    (tmp_path / build.VULKAN / "vkRenderDocUtil.cpp").touch()
    (tmp_path / build.TESTS[1] / "vktMemoryTests.hpp").touch()
    return tmp_path


def test_the_package_keeps_three_groups_and_the_headers_that_are_there(checkout: Path) -> None:
    trimmed = trim_package(PACKAGE, checkout)
    assert '"vktMemoryTests.hpp"' in trimmed and '"tcuPlatform.hpp"' in trimmed and '"memory"' in trimmed
    assert "Elsewhere" not in trimmed and "Glsl" not in trimmed and '"draw"' not in trimmed


def test_structures_print_nothing_and_names_stay() -> None:
    silent = silence_structures(PRINTERS)
    assert silent.count("{ return s; }") == 2
    assert "VkOne = " not in silent and "value.member" not in silent
    assert 'return "two"' in silent and "v.internal" in silent


def test_options_that_the_headers_lack_are_left_out() -> None:
    fitted = fit_tools(VALIDATOR, "void SetOld(bool); SPV_ENV_VULKAN_1_3")
    assert "SetOld" in fitted and "SetNew" not in fitted and "1_4" not in fitted
    assert fit_tools(VALIDATOR, "SetOld SetNew spvValidatorOptionsSetNew SPV_ENV_VULKAN_1_4") == VALIDATOR


def test_the_sources_are_those_of_the_folders_without_those_left_out(checkout: Path) -> None:
    names = [path.name for path in sources(checkout)]
    assert names.count("kept.cpp") == len((*build.SOURCES, build.VULKAN, *build.TESTS))
    assert "vkRenderDocUtil.cpp" not in names and "vktTestPackage.cpp" in names


def test_a_folder_that_is_no_checkout_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give a checkout of KhronosGroup/VK-GL-CTS"):
        list(sources(tmp_path))
