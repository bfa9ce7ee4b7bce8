# Short names for the scripts; everything works without make, too.
.PHONY: serve build test clients lint format debug asan tsan fuzz soak soak-seeds goldens peers bench clean

serve:
	sh scripts/serve.sh $(ARGS)
build:
	sh scripts/install_deps.sh build
	sh scripts/build.sh release omnibus_program
test:
	@sh scripts/test.sh
clients:
	sh scripts/clients.sh
lint:
	sh scripts/lint.sh
format:
	sh scripts/lint.sh --fix
debug:
	sh scripts/install_deps.sh build test
	sh scripts/build.sh $@
	ctest --test-dir out/$@ -j 2 --output-on-failure
asan tsan:
	@sh scripts/sanitize.sh $@
fuzz:
	sh scripts/fuzz.sh
soak:
	@sh scripts/soak.sh
soak-seeds:
	@OMNIBUS_SOAK_SEEDS=1000000 sh scripts/soak.sh seeds
goldens:
	sh scripts/goldens.sh
peers:
	sh scripts/install_deps.sh build test
	sh scripts/build.sh release omnibus_program
	sh tests/peers/llama_cpp/run.sh
bench:
	sh scripts/bench.sh
clean:
	rm -rf out build
