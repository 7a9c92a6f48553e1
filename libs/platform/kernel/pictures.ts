import sharp from 'sharp';

// Several pictures are worked on at once, so each takes one thread; and none comes up twice.
sharp.concurrency(1);
sharp.cache(false);
// The other decoders, of which there are dozens, stay out of reach of uploads whatever their first bytes say.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: [
    'VipsForeignLoadJpegBuffer',
    'VipsForeignLoadPngBuffer',
    'VipsForeignLoadSvgBuffer',
    'VipsForeignLoadWebpBuffer',
  ],
});

export { sharp };
