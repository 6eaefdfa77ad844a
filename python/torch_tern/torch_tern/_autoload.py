"""The entry point torch.backends, which PyTorch calls at the end of its import. A module of its own:
where a program imports torch_tern before torch, torch_tern is still being imported then."""


def autoload():
    import torch_tern  # noqa: F401
