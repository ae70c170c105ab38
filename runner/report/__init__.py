"""The report: reads the database, conf/published/ and conf/choosing.yaml, and nothing else."""
