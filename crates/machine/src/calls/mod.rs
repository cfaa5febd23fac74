//! System calls: what a task may ask of the machine.

mod disk;
