def is_cheap(output, context):
    return "3" in output
