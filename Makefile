# Short names for the checks of CONTRIBUTING.md, which run in .venv.
BIN = .venv/bin
BUILD = build
.PHONY: demo docs lint space test

test: $(BIN)/has-dev # the tests that need only the repository
	$(BIN)/python -m pytest -n 3

lint: $(BIN)/has-dev # style, types, documents and plain English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/check.py

docs: $(BIN)/has-docs # the site, in build/site
	$(BIN)/python -m mkdocs build --strict

demo: # the demo with the versions of demo.lock, in build/demo
	python3 -m venv --clear $(BUILD)/locked
	$(BUILD)/locked/bin/pip install -q --require-hashes -r demo.lock
	$(BUILD)/locked/bin/pip install -q --no-deps --no-build-isolation .
	mkdir -p $(BUILD)/demo && $(BUILD)/locked/bin/monitor demo -o $(BUILD)/demo

space: # the files of a Hugging Face Space, in build/space
	rm -rf $(BUILD)/space && mkdir -p $(BUILD)/space
	git archive HEAD pyproject.toml LICENSE monitor | tar -x -C $(BUILD)/space
	cp examples/space/* $(BUILD)/space

$(BIN)/has-dev: pyproject.toml
	python3 -m venv .venv
	$(BIN)/pip install -q -e '.[dev]' && touch $@

$(BIN)/has-docs: $(BIN)/has-dev
	$(BIN)/pip install -q -e '.[docs]' && touch $@

# needs uv
demo.lock: pyproject.toml
	mkdir -p $(BUILD)
	grep '^#' $@ >$(BUILD)/head.lock
	python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	    >$(BUILD)/tools.in
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    pyproject.toml $(BUILD)/tools.in >$(BUILD)/body.lock
	cat $(BUILD)/head.lock $(BUILD)/body.lock >$@
