# The commands of the project, the same for people and for continuous integration. They need make and Python 3.11 or
# newer, and keep everything they install in .venv. `make help` lists them.

PYTHON ?= python3
# More optional parts of the package, by the names in pyproject.toml: make test EXTRAS=postgres, or EXTRAS="postgres spark".
EXTRAS ?=
# Folder for the data sets of the experiments: make data FOLDER=some/folder.
FOLDER ?=
# With LOCKED=no, the newest versions that pyproject.toml allows are installed, in place of those in requirements/.
LOCKED ?= yes
ifeq ($(filter yes no,$(LOCKED)),)
$(error LOCKED is yes or no, not "$(LOCKED)")
endif
# More arguments for pytest: make test ARGS="-m 'not slow'".
ARGS ?=

# One thread each: sums come out the same on every machine, and tests that run side by side do not fight for cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export VECLIB_MAXIMUM_THREADS := 1

# uv trusts the certificates that the system trusts, as pip does.
export UV_SYSTEM_CERTS := true

# Code is compiled when it is first imported, and kept, whatever the shell says: the tests import it some hundred times.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two installations into one environment at a time would harm each other.
.NOTPARALLEL:

VENV := .venv
RUN := $(VENV)/bin/python -m
# Most of the installed modules are never imported, so the installation compiles none.
PIP := $(RUN) pip install -qq --disable-pip-version-check --no-compile

# A stamp says which optional parts the environment holds, and whether their versions are the locked or the newest ones. It is
# older than pyproject.toml when they must be looked at again. The installation is editable, so that a change of code is tested
# at once, without building a wheel each time; what would differ in the wheel, the list of its files, has a test of its own in
# tests/test_project.py. A comma inside a function of make separates its arguments, so it is written $(comma) there.
comma := ,
empty :=
space := $(empty) $(empty)
extras := $(subst $(space),$(comma),$(strip $(subst $(comma),$(space),$(EXTRAS))))
more := $(if $(extras),$(comma)$(extras))
VERSIONS := $(if $(filter no,$(LOCKED)),newest,locked)
STAMP := $(VENV)/.$(VERSIONS)-

# The compiled kernel is built with the package where there is a C compiler.
KERNEL := hatch_build.py src/confide/compiled/kernel.c src/confide/compiled/passes.h

# Peers want other versions of what the package uses.
PEERS := .venv-peers
OLDEST := .venv-oldest

CLI := $(STAMP)cli
BENCH := $(STAMP)all$(more)
TEST := $(STAMP)all,test$(more)
CHECK := $(STAMP)all,test,check$(more)
# The notebook of the tutorial draws, and is run when the site is built.
DOCS := $(STAMP)cli,plot,docs$(more)
RELEASE := $(STAMP)release$(more)

.PHONY: help demo test check lint types layers project house bench bench-peers data experiments audit audit-long faults fuzz mutants sanitize lock oldest release wheels docs clean

help: ## list these commands
	@sed -nE 's/^([a-z-]+):.* ## (.*)/\1 \2/p' Makefile | while read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done
	@echo "Variables: PYTHON=$(PYTHON)  EXTRAS=more optional parts  LOCKED=no for newest versions  ARGS=more arguments for pytest  FOLDER=of the data sets"

demo: $(CLI) ## train a private model on real data and print its guarantee
	@$(VENV)/bin/confide demo --force # a second run replaces the model of the first

test: $(TEST) ## run the tests, on all cores
	$(RUN) pytest --numprocesses=auto --dist=worksteal $(ARGS)

check: lint types layers project house ## run every check that needs no data

lint: $(CHECK) ## style of the code
	$(RUN) ruff check
	$(RUN) ruff format --check

types: $(CHECK) ## static types
	$(RUN) mypy

layers: $(CHECK) ## direction of the imports
	$(VENV)/bin/lint-imports

project: $(CHECK) ## rules of the project, such as the size of the trusted code
	$(RUN) pytest -q tests/test_project.py

house: $(CHECK) ## how much code there is to know, beside its limits
	$(RUN) scripts.house

bench: $(BENCH) ## run the benchmarks
	$(VENV)/bin/python benchmarks/run.py

bench-peers: $(PEERS)/.has-core ## compare accuracy with other libraries, in an environment of their own: an hour
	@[ -f $(PEERS)/.has-peers ] || { $(PEERS)/bin/python -m pip install -qq --disable-pip-version-check \
	  --requirement benchmarks/peers/requirements.txt && touch $(PEERS)/.has-peers; } || \
	  echo "peers could not be installed; those that are missing are named below" >&2
	$(PEERS)/bin/python -m benchmarks.peers.accuracy $(ARGS)

data: $(CLI) ## download and prepare the data sets of the experiments, into FOLDER=some/folder
	@[ -n "$(FOLDER)" ] || { echo "name a folder for the data sets: make data FOLDER=some/folder" >&2; exit 2; }
	$(VENV)/bin/python experiments/obtain_data.py "$(FOLDER)" $(ARGS)

experiments: $(BENCH) ## repeat the experiments of the papers: an hour on two cores, then what is missing
	$(VENV)/bin/python experiments/run.py $(ARGS)

# The oldest versions of what the package and its optional parts need; then what the tests need besides, as new as goes with them.
oldest: $(RELEASE) ## run the tests with the oldest versions that pyproject.toml allows, in an environment of their own
	@[ -d $(OLDEST) ] || $(RUN) uv venv --quiet --python $(VENV)/bin/python $(OLDEST)
	$(RUN) uv pip install --quiet --python $(OLDEST)/bin/python --resolution lowest-direct --editable '.[all]'
	$(RUN) uv pip install --quiet --python $(OLDEST)/bin/python --editable '.[all,test]'
	$(OLDEST)/bin/python -m pytest --numprocesses=auto --dist=worksteal $(ARGS)

audit: $(TEST) ## try to break every guarantee, and print the table: replays, attacks and planted bugs
	$(RUN) benchmarks.audit.run $(ARGS)

audit-long: $(TEST) ## the attacks with fifty thousand releases at a time: an hour or two
	$(RUN) pytest -m audit $(ARGS)

faults: $(TEST) ## kill fits a thousand times, take disk, memory and files from them, and share a ledger among 512 threads
	$(RUN) scripts.faults $(ARGS)

fuzz: $(TEST) ## give 500,000 broken files, messages and arguments to everything that reads some: ten minutes
	$(RUN) scripts.fuzz $(ARGS)

mutants: $(TEST) ## change the trusted code in thousands of places, one at a time, and list what no test notices: hours, and it goes on where it stopped
	$(RUN) scripts.mutation_tests $(ARGS)

# Solvers and sources of rows once more, as if the kernel had not been built, and the kernel under sanitizers.

sanitize: $(TEST) ## test the compiled kernel under sanitizers, and what solvers do without it: needs a C compiler
	CONFIDE_COMPILED=0 $(RUN) pytest -q tests/solvers tests/data tests/training/test_fit.py
	$(RUN) scripts.sanitize_kernel $(ARGS)

lock: $(RELEASE) ## resolve the versions and checksums of requirements/ anew: needs a network
	$(RUN) scripts.lock

release: $(RELEASE) ## build wheel and sdist twice, compare them, try them in an empty environment, list parts and licences
	$(RUN) scripts.release $(ARGS)

wheels: $(RELEASE) ## build wheels with the compiled kernel for the processors of this machine: needs Docker on Linux
	$(RUN) cibuildwheel --output-dir wheelhouse $(ARGS)

docs: $(DOCS) ## build the documentation site in build/site, and check every link of it
	$(RUN) scripts.build_site

clean: ## remove what these commands made
	rm -rf $(VENV) $(PEERS) $(OLDEST) build dist wheelhouse .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.so' -exec rm -f {} +

# The environment is made anew where a Python is asked for that it was not made with. Without PYTHON= it stays as it is.
SAME := import sys; print(sys.version, sys.base_prefix)
.PHONY: python-asked-for
python-asked-for:

$(VENV)/pyvenv.cfg: $(if $(filter file,$(origin PYTHON)),,python-asked-for)
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "confide needs Python 3.11 or newer, and $(PYTHON) was not found: try make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "confide needs Python 3.11 or newer, and $(PYTHON) is older: try make PYTHON=python3.12" >&2; exit 1; }
	@[ "$$("$(PYTHON)" -c '$(SAME)')" = "$$($(VENV)/bin/python -c '$(SAME)' 2>&1)" ] || { \
	  echo "making $(VENV)"; "$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }; }

$(PEERS)/.has-core: $(VENV)/pyvenv.cfg pyproject.toml src/confide/_version.py benchmarks/peers/requirements.txt
	@echo "making $(PEERS)"
	@$(VENV)/bin/python -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check --editable '.[files,accounting]'
	@touch '$@'

# Packages come with the versions and checksums of the lock files, and the package itself from here. uv installs several at a
# time; it does not read the settings of pip, so where an index or a certificate is named there alone, pip does it. Spark
# comes as source, and half of the work is to compress it for a wheel that is unpacked at once.
locked = --config-settings=--build-option=--compression=stored --require-hashes \
  $(foreach part,build core $(filter-out core,$(subst $(comma), ,$*)),--requirement requirements/$(part).txt)

$(STAMP)%: $(VENV)/pyvenv.cfg pyproject.toml src/confide/_version.py $(KERNEL) $(wildcard requirements/*.txt)
	@echo "installing confide ($*), $(VERSIONS) versions, into $(VENV)"
	@rm -f $(VENV)/.$(if $(filter no,$(LOCKED)),locked,newest)-*
ifeq ($(LOCKED),no)
	@$(PIP) --upgrade --upgrade-strategy eager --editable '.$(if $(filter core,$*),,[$*])'
else
	@$(PIP) --require-hashes --requirement requirements/build.txt
	@$(RUN) uv pip install --quiet --python $(VENV)/bin/python $(locked) || $(PIP) $(locked)
	@$(PIP) --no-deps --no-build-isolation --editable .
endif
	@touch '$@'
