# Succeeds where CMake is new enough for CMakeLists.txt: cmake -P tools/enough.cmake
cmake_minimum_required(VERSION 3.18)
