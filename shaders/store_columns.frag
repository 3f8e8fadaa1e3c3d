#version 450
// Stores 9 in the word of the fragment's column in the storage buffer at binding 0; no colour.
layout(std430, set = 0, binding = 0) writeonly buffer Columns { uint word[]; } columns;
void main()
{
    columns.word[uint(gl_FragCoord.x)] = 9u;
}
