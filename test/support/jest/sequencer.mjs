import Sequencer from '@jest/test-sequencer';

/** These take long for their size. Begun late, one would run alone at the end. */
const FIRST =
  /[/](chaos[/]chaos|api[/]schemathesis|monitoring[/]idle-statements|stamping[/]budget)[.]/;

/** Begins with what takes longest. Without durations of an earlier run, as in a fresh clone, Jest begins with the largest. */
export default class TestSequencer extends Sequencer {
  sort(tests) {
    const isFirst = ({ path }) => FIRST.test(path);
    const sorted = super.sort(tests);
    return [...sorted.filter(isFirst), ...sorted.filter((test) => !isFirst(test))];
  }
}
