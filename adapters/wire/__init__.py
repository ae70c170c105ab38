"""Code generated from proto/*.proto; never edited by hand. From the top folder, after a change there:

python -m grpc_tools.protoc -Iproto --python_out=adapters/wire --pyi_out=adapters/wire proto/*.proto
"""
