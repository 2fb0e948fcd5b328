"""Methods that train the weights of a language model which writes its actions."""
