from pytest_tsuka.cli import main

if __name__ == "__main__":
    main(prog_name="tsuka")
