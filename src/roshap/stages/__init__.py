"""The pipeline: the only code that knows Hydra, DVC and MLflow.

A stage takes a checked configuration, calls the library, writes files and logs one MLflow run.
"""
