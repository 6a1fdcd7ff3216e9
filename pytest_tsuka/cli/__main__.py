from pytest_tsuka.cli import main

main(prog_name="tsuka")
