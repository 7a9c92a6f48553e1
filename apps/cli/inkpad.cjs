#!/usr/bin/env node
'use strict';
// In the oldest syntax, so that an old Node.js gets as far as the check of its version.
require('./node-version.cjs');

import('./launcher.mjs');
