import pickle


def save(thing, target):
    with open(target, "wb") as file:
        pickle.dump(thing, file)
