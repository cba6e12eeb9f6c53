"""The studio for programs: HTTP routes below `/api/v1`, and pictures in OpenAI's shape below `/v1/images`."""
