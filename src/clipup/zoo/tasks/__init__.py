"""Tasks of the zoo that no library has. A user names one like any other: ``clipup.zoo.tasks.stool:Stool``."""
