'use strict';
// Loaded before anything else and in the oldest syntax, so that an old Node.js gets this far.
var version = process.versions.node.split('.').map(Number);

if (version[0] < 20 || (version[0] === 20 && version[1] < 19)) {
  console.error(
    'Inkpad needs Node.js 20.19 or newer, and works best with 24; this is ' +
      process.versions.node +
      '.',
  );
  process.exit(1);
}
